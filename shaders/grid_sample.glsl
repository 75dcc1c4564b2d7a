//@ input X
//@ input G
//@ param ivec4 size
//@ param int dims
//@ param int channels
//@ param int points
//@ param int mode
//@ param int padding
//@ param int align_corners
// Samples X at the points of G. `mode` is nearest (0), linear (1) or cubic (2). `padding` defines the elements outside:
// zeros (0), the border (1) or reflections (2).
float reflected(float at, float low, float high) {
    if (at >= low && at <= high) return at;
    float extent = high - low, beyond = at < low ? low - at : at - high;
    if (extent <= 0.0) return low;
    float times = floor(beyond / extent), rest = beyond - times * extent;
    return (at < low) == (mod(times, 2.0) == 0.0) ? low + rest : high - rest;
}
// The index that a tap reads in one dim; -1 for none.
int tap(int at, int extent, float low, float high) {
    if (padding == 0) return at < 0 || at >= extent ? -1 : at;
    if (padding == 2) at = int(reflected(float(at), low, high));
    return min(max(at, 0), extent - 1);
}
float weight(int k, float t) {
    if (mode == 1) return k == 0 ? 1.0 - t : t;
    const float a = -0.75;
    float d = abs(float(k - 1) - t);
    return d <= 1.0 ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0 : ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
}
O_TYPE element(int o) {
    int point = o % points, plane = o / points;
    int g = (plane / channels * points + point) * dims;
    ivec3 first = ivec3(0), count = ivec3(1);
    vec3 part = vec3(0.0), low = vec3(0.0), high = vec3(0.0);
    for (int k = 0; k < dims; ++k) {
        int d = 2 - k;
        float extent = float(size[d]), c = G(g + k);
        low[d] = align_corners == 1 ? 0.0 : -0.5;
        high[d] = align_corners == 1 ? extent - 1.0 : extent - 0.5;
        float at = align_corners == 1 ? (c + 1.0) / 2.0 * (extent - 1.0) : ((c + 1.0) * extent - 1.0) / 2.0;
        if (mode == 0) at = round_even(at);
        at = is_nan(at) ? -1e9 : min(max(at, -1e9), 1e9);
        if (padding == 1 && (at < low[d] || at > high[d])) at = min(max(at, 0.0), extent - 1.0);
        if (padding == 2) at = reflected(at, low[d], high[d]);
        count[d] = mode == 0 ? 1 : 2 * mode;
        first[d] = mode == 0 ? int(at) : int(floor(at)) - (mode - 1);
        part[d] = at - floor(at);
    }
    float total = 0.0;
    for (int i = 0; i < count.x; ++i) {
        int z = dims > 2 ? tap(first.x + i, size.x, low.x, high.x) : 0;
        for (int j = 0; j < count.y; ++j) {
            int y = dims > 1 ? tap(first.y + j, size.y, low.y, high.y) : 0;
            for (int k = 0; k < count.z; ++k) {
                int x = tap(first.z + k, size.z, low.z, high.z);
                if (z < 0 || y < 0 || x < 0) continue;
                int at = ((plane * size.x + z) * size.y + y) * size.z + x;
                if (mode == 0) return X(at);
                float w = weight(k, part.z);
                if (dims > 1) w *= weight(j, part.y);
                if (dims > 2) w *= weight(i, part.x);
                total += w * float(X(at));
            }
        }
    }
    return O_TYPE(total);
}
