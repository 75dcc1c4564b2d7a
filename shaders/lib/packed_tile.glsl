// The products of a tile of ROWS rows by eight columns, from one word of the depth up to `end`. sum[2 * r + q] holds
// columns 4 * q to 4 * q + 3 of row r. One row is scaled after each block, and several share scaled weights.
#if ROWS == 1
#define SCALED(weights, scale) (weights)
#else
#define SCALED(weights, scale) ((weights) * (scale))
#endif
#ifdef WHOLE
#define LOAD(r, p, none) if (((p) & 3) == 0) v[r] = X_texel(a[r]++);
#else
#define LOAD(r, p, none) v[r][(p) & 3] = X(a[r]++);
#endif
#define ADD(r, p, none) part[2 * r] += v[r][(p) & 3] * f0; part[2 * r + 1] += v[r][(p) & 3] * f1;
#define PLACE(p, none, nothing) \
    REPEAT2(ROWS, LOAD, p, none) \
    f0 = SCALED(codes(low, p) - zero_low, scale_low); f1 = SCALED(codes(high, p) - zero_high, scale_high); \
    REPEAT2(ROWS, ADD, p, none)
#define ADD_ONE(r, unused, none) \
    v[r].x = X(a[r]++); part[2 * r] += v[r].x * f0; part[2 * r + 1] += v[r].x * f1;
void multiply(int first, int column, int word, int end, out vec4 sum[2 * ROWS]) {
    int at = texel_of(column, words), other = texel_of(column + 4, words), whole = depth / EACH;
    int a[ROWS], index = block_of(word);
    vec4 v[ROWS], part[2 * ROWS], f0, f1;
    for (int r = 0; r < ROWS; ++r) {
        a[r] = min(first + r, rows - 1) * depth + word * EACH;
        sum[2 * r] = sum[2 * r + 1] = part[2 * r] = part[2 * r + 1] = vec4(0.0);
    }
    for (; word < end; ++index) {
        int stop = min(end_of(index), end);
        vec4 scale_low = scales_of(column, index), scale_high = scales_of(column + 4, index);
        vec4 zero_low = zeros_of(column, index), zero_high = zeros_of(column + 4, index);
#ifdef WHOLE
        for (int r = 0; r < ROWS; ++r) a[r] >>= 2; // texels in this loop
#endif
        for (; word < min(stop, whole); ++word) {
            ivec4 low = W_texel(at + 4 * word), high = W_texel(other + 4 * word);
            REPEAT(EACH, PLACE, none, none)
        }
#ifdef WHOLE
        for (int r = 0; r < ROWS; ++r) a[r] <<= 2;
#endif
        if (word < stop) {
            ivec4 low = W_texel(at + 4 * word), high = W_texel(other + 4 * word);
            for (int p = 0; p < depth - whole * EACH; ++p) {
                f0 = SCALED(codes(low, p) - zero_low, scale_low);
                f1 = SCALED(codes(high, p) - zero_high, scale_high);
                REPEAT(ROWS, ADD_ONE, none, none)
            }
            ++word;
        }
#if ROWS == 1
        sum[0] += scale_low * part[0];
        sum[1] += scale_high * part[1];
        part[0] = part[1] = vec4(0.0);
#endif
    }
#if ROWS > 1
    sum = part;
#endif
}
void finish(inout vec4 sum[2 * ROWS], int column) {
    vec4 low = bias_of(column), high = bias_of(column + 4);
    for (int r = 0; r < ROWS; ++r) {
        sum[2 * r] = epilogue_of_four(sum[2 * r] + low);
        sum[2 * r + 1] = epilogue_of_four(sum[2 * r + 1] + high);
    }
}
