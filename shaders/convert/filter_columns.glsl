//@ texture T
//@ input F texels
//@ param ivec2 texture_size
//@ param int layer
//@ param int width
//@ param int rows
//@ param int taps
//@ param int first_row
//@ param int row_step
//@ unit strip
//@ include texels
// Filters rows of a texture to a width, and writes column after column. A texel is a colour. F has for each column a
// texel with its first pixel, and texels of four weights.
void strip(int begin, out vec4 result[TEXELS]) {
    int x = begin / rows, y = begin - x * rows, at = min(x, width - 1) * (1 + (taps + 3) / 4), line[TEXELS];
    for (int p = 0; p < TEXELS; ++p) {
        line[p] = clamp(first_row + (y + p) * row_step, 0, texture_size.y - 1);
        result[p] = vec4(0.0);
    }
    for (int pixel = int(F_texel(at).x), end = pixel + taps; pixel < end; pixel += 4) {
        vec4 weights = F_texel(++at);
        for (int k = pixel; k < min(pixel + 4, end); ++k, weights = weights.yzwx)
            for (int p = 0; p < TEXELS; ++p) result[p] += weights.x * texel_of(ivec2(k, line[p]), 0);
    }
}
