//@ input X
//@ input W
//@ input B
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param int channels
//@ param int outputs
//@ param int depth
//@ param ivec4 weight
//@ param int has_bias
//@ unit texel
//@ long
// Direct convolution, four output elements at once. `weight` holds the strides of the weights: output channel, depth,
// kernel row, kernel column. If a tap's four inputs are adjacent in X, one X_four reads them. One loop serves all four
// elements, because llvmpipe ends a shader after 65,535 rounds.
vec4 texel(int t) {
    ivec4 o = t * 4 + ivec4(0, 1, 2, 3);
    ivec4 rest = o / output_.y;
    ivec4 left = (o - rest * output_.y) * stride.y - begin.y;
    ivec4 planes = rest / output_.x;
    ivec4 top = (rest - planes * output_.x) * stride.x - begin.x;
    ivec4 n = planes / outputs;
    ivec4 m = planes - n * outputs;
    ivec4 first = (n * channels + m / (outputs * depth / channels) * depth) * (size.x * size.y);
    bool one_channel = planes.x == planes.w;
    int plane = size.x * size.y;
    vec4 total = vec4(0.0);
    if (has_bias == 1) total = vec4(B(m.x), B(m.y), B(m.z), B(m.w));
    for (int i = 0; i < kernel.x; ++i) {
        ivec4 y = top + i * dilation.x;
        for (int j = 0; j < kernel.y; ++j) {
            ivec4 x = left + j * dilation.y;
            bvec4 inside = equal(ivec4(greaterThanEqual(x, ivec4(0))) * ivec4(lessThan(x, ivec4(size.y)))
                * ivec4(greaterThanEqual(y, ivec4(0))) * ivec4(lessThan(y, ivec4(size.x))), ivec4(1));
            ivec4 at = first + ivec4(inside) * (y * size.y + x);
            ivec4 w = m * weight.x + i * weight.z + j * weight.w;
            vec4 sum = vec4(0.0);
            if (one_channel && all(inside) && at.w == at.x + 3) {
                int c = 0, k = at.x;
                if (weight.y == 1)
                    for (; c + 3 < depth; c += 4, k += 4 * plane) {
                        vec4 v = W_four(w.x + c);
                        sum += v.x * X_four(k) + v.y * X_four(k + plane) + v.z * X_four(k + 2 * plane) + v.w * X_four(k + 3 * plane);
                    }
                for (; c < depth; ++c, k += plane) sum += W(w.x + c * weight.y) * X_four(k);
            } else {
                for (int c = 0; c < depth; ++c) {
                    ivec4 v = w + c * weight.y, k = at + c * plane;
                    vec4 factor = one_channel ? vec4(W(v.x)) : vec4(W(v.x), W(v.y), W(v.z), W(v.w));
                    sum += factor * vec4(X(k.x), X(k.y), X(k.z), X(k.w));
                }
            }
            total += mix(vec4(0.0), sum, inside);
        }
    }
    return vec4(epilogue(total.x), epilogue(total.y), epilogue(total.z), epilogue(total.w));
}
