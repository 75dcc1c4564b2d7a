//@ input X
//@ input R
//@ input I
//@ param ivec2 size
//@ param ivec2 output_
//@ param int channels
//@ param int pictures
//@ param int columns
//@ param int samples
//@ param int most
//@ param int half_pixel
//@ param int largest
//@ param float scale
//@ long
// An element of a region: the mean of its samples, or the largest of the samples' weighted corners. It takes at most
// `most` samples along each side. A region of a missing picture is 0.
float element(int o) {
    int column = o % output_.y, row = o / output_.y % output_.x, rest = o / (output_.x * output_.y);
    int roi = rest / channels, picture = int(I(roi));
    if (picture < 0 || picture >= pictures) return 0.0;
    int plane = (picture * channels + rest % channels) * size.x * size.y;
    vec2 begin = vec2(R(roi * columns + 1), R(roi * columns)) * scale - (half_pixel == 1 ? 0.5 : 0.0);
    vec2 end = vec2(R(roi * columns + 3), R(roi * columns + 2)) * scale - (half_pixel == 1 ? 0.5 : 0.0);
    vec2 extent = half_pixel == 1 ? end - begin : max(end - begin, vec2(1.0));
    vec2 bin = extent / vec2(output_);
    ivec2 count = samples > 0 ? ivec2(samples) : ivec2(min(max(ceil(bin), vec2(0.0)), vec2(1e6)));
    vec2 start = begin + vec2(row, column) * bin, spacing = bin / vec2(max(count, ivec2(1)));
    ivec2 first = ivec2(0), last = count;
    for (int d = 0; d < 2; ++d) if (count[d] > most) { // the samples in the picture, and some beside it
        first[d] = int(clamp(floor((-1.0 - start[d]) / spacing[d] - 0.5) - 1.0, 0.0, float(count[d] - most)));
        last[d] = first[d] + most;
    }
    float total = 0.0;
    for (int i = first.x; i < last.x; ++i) {
        float y = start.x + (float(i) + 0.5) * spacing.x;
        for (int j = first.y; j < last.y; ++j) {
            float x = start.y + (float(j) + 0.5) * spacing.y;
            float a = 0.0, b = 0.0, c = 0.0, d = 0.0;
            if (y >= -1.0 && y <= float(size.x) && x >= -1.0 && x <= float(size.y)) {
                vec2 at = min(max(vec2(y, x), vec2(0.0)), vec2(size - 1));
                ivec2 low = ivec2(at), high = min(low + 1, size - 1);
                vec2 t = at - vec2(low);
                a = (1.0 - t.x) * (1.0 - t.y) * X(plane + low.x * size.y + low.y);
                b = (1.0 - t.x) * t.y * X(plane + low.x * size.y + high.y);
                c = t.x * (1.0 - t.y) * X(plane + high.x * size.y + low.y);
                d = t.x * t.y * X(plane + high.x * size.y + high.y);
            }
            if (largest == 0) total += a + b + c + d;
            else {
                float best = max(max(a, b), max(c, d));
                total = i == first.x && j == first.y ? best : max(total, best);
            }
        }
    }
    return largest == 1 ? total : total / (float(max(count.x, 1)) * float(max(count.y, 1)));
}
