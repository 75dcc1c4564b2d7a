//@ input A
//@ input B texels
//@ input C
//@ param ivec4 batch[2]
//@ param ivec4 a_batch[2]
//@ param ivec4 b_batch[2]
//@ param ivec2 base
//@ param ivec2 a_step
//@ param ivec2 b_step
//@ param ivec2 c_step
//@ param int rank
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int has_bias
//@ param float alpha
//@ param float beta
//@ unit strip
// A strip of one row: its elements share those of A. The columns of B follow each other, in whole strips.
//@ include product
//@ include finish
void strip(int first, out O_VECTOR result[TEXELS]) {
    int line = first * 4 / columns, column = first * 4 - line * columns, row = line % rows;
    ivec2 at = planes(line / rows);
    int a = at.x + row * a_step.x, b = at.y + column, k = 0;
    for (int j = 0; j < TEXELS; ++j) result[j] = O_VECTOR(0);
    for (; k + 3 < depth; k += 4, a += 4 * a_step.y) {
        O_VECTOR four = A_at(a + ivec4(0, 1, 2, 3) * a_step.y);
        for (int c = 0; c < 4; ++c, b += b_step.x)
            for (int j = 0; j < TEXELS; ++j) result[j] += four[c] * B_texel((b >> 2) + j);
    }
    for (; k < depth; ++k, a += a_step.y, b += b_step.x)
        for (int j = 0; j < TEXELS; ++j) result[j] += A(a) * B_texel((b >> 2) + j);
    for (int j = 0; j < TEXELS; ++j)
        for (int c = 0; c < 4; ++c) result[j][c] = finish(result[j][c], row, column + j * 4 + c);
}
