//@ input X
//@ input G
//@ param ivec4 size
//@ param int channels
//@ param int points
//@ param int align_corners
// Samples X at the points of G, in DIMS dims. MODE is nearest (0), linear (1) or cubic (2). PADDING defines the elements
// outside: zeros (0), the border (1) or reflections (2).
float reflected(float at, float low, float high) {
    if (at >= low && at <= high) return at;
    float extent = high - low, beyond = at < low ? low - at : at - high;
    if (extent <= 0.0) return low;
    float times = floor(beyond / extent), rest = beyond - times * extent;
    return (at < low) == (mod(times, 2.0) == 0.0) ? low + rest : high - rest;
}
// The index that a tap reads in one dim; -1 for none.
int tap(int at, int extent, float low, float high) {
    if (PADDING == 0) return at < 0 || at >= extent ? -1 : at;
    if (PADDING == 2) at = int(reflected(float(at), low, high));
    return min(max(at, 0), extent - 1);
}
float weight(int k, float t) {
    if (MODE == 1) return k == 0 ? 1.0 - t : t;
    const float a = -0.75;
    float d = abs(float(k - 1) - t);
    return d <= 1.0 ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0 : ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
}
O_TYPE element(int o) {
    int point = o % points, plane = o / points;
    int g = (plane / channels * points + point) * DIMS;
    ivec3 first = ivec3(0), count = ivec3(1);
    vec3 part = vec3(0.0), low = vec3(0.0), high = vec3(0.0);
    for (int k = 0; k < DIMS; ++k) {
        int d = 2 - k;
        float extent = float(size[d]), c = G(g + k);
        low[d] = align_corners == 1 ? 0.0 : -0.5;
        high[d] = align_corners == 1 ? extent - 1.0 : extent - 0.5;
        float at = align_corners == 1 ? (c + 1.0) / 2.0 * (extent - 1.0) : ((c + 1.0) * extent - 1.0) / 2.0;
        if (MODE == 0) at = round_even(at);
        at = is_nan(at) ? -1e9 : min(max(at, -1e9), 1e9);
        if (PADDING == 1 && (at < low[d] || at > high[d])) at = min(max(at, 0.0), extent - 1.0);
        if (PADDING == 2) at = reflected(at, low[d], high[d]);
        count[d] = MODE == 0 ? 1 : 2 * MODE;
        first[d] = MODE == 0 ? int(at) : int(floor(at)) - (MODE - 1);
        part[d] = at - floor(at);
    }
    float total = 0.0;
    for (int i = 0; i < count.x; ++i) {
        int z = DIMS > 2 ? tap(first.x + i, size.x, low.x, high.x) : 0;
        for (int j = 0; j < count.y; ++j) {
            int y = DIMS > 1 ? tap(first.y + j, size.y, low.y, high.y) : 0;
            for (int k = 0; k < count.z; ++k) {
                int x = tap(first.z + k, size.z, low.z, high.z);
                if (z < 0 || y < 0 || x < 0) continue;
                int at = ((plane * size.x + z) * size.y + y) * size.z + x;
                if (MODE == 0) return X(at);
                float w = weight(k, part.z);
                if (DIMS > 1) w *= weight(j, part.y);
                if (DIMS > 2) w *= weight(i, part.x);
                total += w * float(X(at));
            }
        }
    }
    return O_TYPE(total);
}
