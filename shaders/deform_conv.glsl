//@ input X
//@ input W
//@ input D
//@ input B
//@ input M
//@ param ivec2 size
//@ param ivec2 output_
//@ param ivec2 kernel
//@ param ivec2 stride
//@ param ivec2 dilation
//@ param ivec2 begin
//@ param int channels
//@ param int outputs
//@ param int depth
//@ param int offset_groups
//@ param int has_bias
//@ param int has_mask
//@ long
// Deformable convolution. D moves each tap to a point between four elements of X; elements outside X are 0. The mask M
// scales the tap.
float at(int plane, int y, int x) {
    return y < 0 || y >= size.x || x < 0 || x >= size.y ? 0.0 : X((plane * size.x + y) * size.y + x);
}
float element(int o) {
    int point = o % (output_.x * output_.y), rest = o / (output_.x * output_.y), points = output_.x * output_.y;
    int m = rest % outputs, n = rest / outputs, taps = kernel.x * kernel.y, per_share = channels / offset_groups;
    ivec2 corner = ivec2(point / output_.y, point % output_.y) * stride - begin;
    int first = m / (outputs / (channels / depth)) * depth;
    float total = has_bias == 1 ? B(m) : 0.0;
    for (int t = 0; t < taps; ++t) {
        vec2 tap = vec2(corner + ivec2(t / kernel.y, t % kernel.y) * dilation);
        int share = -1;
        float factor = 1.0;
        vec2 part = vec2(0.0);
        ivec2 low = ivec2(0);
        for (int c = first; c < first + depth; ++c) {
            if (c / per_share != share) {
                share = c / per_share;
                int d = (n * offset_groups + share) * taps + t;
                vec2 where_ = tap + vec2(D(d * 2 * points + point), D((d * 2 + 1) * points + point));
                factor = has_mask == 1 ? M(d * points + point) : 1.0;
                low = ivec2(floor(min(max(where_, vec2(-9.0)), vec2(size) + 9.0)));
                part = where_ - floor(where_);
            }
            int plane = n * channels + c;
            float above = (1.0 - part.y) * at(plane, low.x, low.y) + part.y * at(plane, low.x, low.y + 1);
            float below = (1.0 - part.y) * at(plane, low.x + 1, low.y) + part.y * at(plane, low.x + 1, low.y + 1);
            total += W((m * depth + c - first) * taps + t) * factor * ((1.0 - part.x) * above + part.x * below);
        }
    }
    return total;
}
