//@ input A
//@ input B
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
//@ unit texel
//@ long
// Four output elements at once; in one row they share every element of A.
//@ include product
//@ include finish
O_VECTOR texel(int t) {
    ivec4 o = min(t * 4 + ivec4(0, 1, 2, 3), ivec4(O_size - 1));
    ivec4 rest = o / columns, column = o - rest * columns;
    ivec4 plane = rest / rows, row = rest - plane * rows;
    ivec4 a, b;
    for (int k = 0; k < 4; ++k) {
        ivec2 at = planes(plane[k]);
        a[k] = at.x + row[k] * a_step.x;
        b[k] = at.y + column[k] * b_step.y;
    }
    O_VECTOR total = O_VECTOR(0);
    bool one_row = rest.x == rest.w;
    if (one_row && b_step.y == 1 && column.w == column.x + 3) {
        for (int k = 0; k < depth; ++k) total += A(a.x + k * a_step.y) * B_four(b.x + k * b_step.x);
    } else if (one_row) {
        for (int k = 0; k < depth; ++k) {
            total += A(a.x) * O_VECTOR(B(b.x), B(b.y), B(b.z), B(b.w));
            a += a_step.y;
            b += b_step.x;
        }
    } else {
        for (int k = 0; k < depth; ++k) {
            total += O_VECTOR(A(a.x), A(a.y), A(a.z), A(a.w)) * O_VECTOR(B(b.x), B(b.y), B(b.z), B(b.w));
            a += a_step.y;
            b += b_step.x;
        }
    }
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k) result[k] = finish(total[k], row[k], column[k]);
    return result;
}
