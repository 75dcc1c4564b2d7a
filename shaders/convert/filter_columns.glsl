//@ texture T
//@ input F texels
//@ param ivec2 texture_size
//@ param int layer
//@ param int width
//@ param int taps
//@ param int first_row
//@ param int row_step
//@ unit texel
//@ include texels
// Filters rows of a texture to a width. A texel is a colour. F has for each column a texel with its first pixel, and
// texels of four weights.
vec4 texel(int t) {
    int y = t / width, x = t - y * width, at = x * (1 + taps / 4), first = int(F_texel(at).x);
    int row = first_row + y * row_step;
    row = min(max(row, 0), texture_size.y - 1);
    vec4 sum = vec4(0.0);
    for (int k = 0; k < taps; k += 4) {
        vec4 weights = F_texel(at + 1 + k / 4);
        for (int n = 0; n < 4; ++n) sum += weights[n] * texel_of(ivec2(min(first + k + n, texture_size.x - 1), row), 0);
    }
    return sum;
}
