//@ texture T
//@ input F
//@ param ivec2 texture_size
//@ param int layer
//@ param int width
//@ param int taps
//@ param int first_row
//@ param int row_step
//@ unit texel
//@ include texels
// Filters rows of a texture to a width. A texel is a colour. F has for each column its first pixel, and weights.
vec4 texel(int t) {
    int x = t % width, at = x * (taps + 1), first = int(F(at));
    int row = first_row + t / width * row_step;
    row = min(max(row, 0), texture_size.y - 1);
    vec4 sum = vec4(0.0);
    for (int k = 0; k < taps; ++k)
        sum += F(at + 1 + k) * texel_of(ivec2(min(first + k, texture_size.x - 1), row), 0);
    return sum;
}
