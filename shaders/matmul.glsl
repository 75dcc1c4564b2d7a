//@ input A
//@ input B
//@ input C
//@ param ivec4 batch[2]
//@ param ivec4 a_batch[2]
//@ param ivec4 b_batch[2]
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
//@ param vec4 p[4]
// Four columns of one row share every element of A.
#define TEXEL
ivec2 planes(int index) {
    ivec2 at = ivec2(0);
    for (int d = rank - 1; d >= 0; --d) {
        int dim = batch[d >> 2][d & 3];
        int c = index % dim;
        index /= dim;
        at += c * ivec2(a_batch[d >> 2][d & 3], b_batch[d >> 2][d & 3]);
    }
    return at;
}
float finish(float total, int row, int column) {
    float value = alpha * total;
    if (has_bias == 1) value += beta * C(row * c_step.x + column * c_step.y);
    return epilogue(value);
}
float one(int o) {
    int column = o % columns, row = o / columns % rows;
    ivec2 at = planes(o / columns / rows) + ivec2(row * a_step.x, column * b_step.y);
    float total = 0.0;
    for (int k = 0; k < depth; ++k) total += A(at.x + k * a_step.y) * B(at.y + k * b_step.x);
    return finish(total, row, column);
}
vec4 texel(int t) {
    int o = t * 4, column = o % columns;
    vec4 result = vec4(0.0);
    if (column + 3 < columns) {
        int row = o / columns % rows, s = b_step.y;
        ivec2 at = planes(o / columns / rows) + ivec2(row * a_step.x, column * s);
        vec4 total = vec4(0.0);
        for (int k = 0; k < depth; ++k) {
            int b = at.y + k * b_step.x;
            total += A(at.x + k * a_step.y) * vec4(B(b), B(b + s), B(b + 2 * s), B(b + 3 * s));
        }
        for (int k = 0; k < 4; ++k) result[k] = finish(total[k], row, column + k);
    } else {
        for (int k = 0; k < 4; ++k) if (o + k < O_size) result[k] = one(o + k);
    }
    return result;
}
