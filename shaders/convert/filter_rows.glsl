//@ input X texels
//@ input F texels
//@ param int stride
//@ param int rows
//@ param int taps
//@ param int first_row
//@ unit strip
// Filters the columns that filter_columns wrote, of `rows` texels each. A texel is a colour. F has for each row a texel
// with the first row that it reads, and texels of four weights. Each row has `stride` texels: whole strips.
void strip(int begin, out vec4 result[TEXELS]) {
    int y = begin / stride, x = begin - y * stride, at = y * (1 + (taps + 3) / 4);
    for (int p = 0; p < TEXELS; ++p) result[p] = vec4(0.0);
    for (int row = int(F_texel(at).x) - first_row + x * rows, end = row + taps; row < end; row += 4) {
        vec4 weights = F_texel(++at);
        for (int k = row; k < min(row + 4, end); ++k, weights = weights.yzwx)
            for (int p = 0; p < TEXELS; ++p) result[p] += weights.x * X_texel(k + p * rows);
    }
}
