// The products of a tile of ROWS rows by eight columns, from k up to `end` of the depth; four of the depth at once.
// sum[2 * r + q] holds columns 4 * q to 4 * q + 3 of row r.
// A texel of A holds four of the depth if A_BY is DEPTH, one of B if B_BY is, and four columns of B if it is COLUMNS, as
// long as texels begin where they should: `whole` says so for A (1) and B (2). ALWAYS has the bits that are always set.
// If B_BY is TILES, B is packed as (eight columns, depth, column), with a depth of whole fours: then eight consecutive
// texels hold what four of the depth need.
#define NEITHER 0
#define DEPTH 1
#define COLUMNS 2
#define TILES 3
#define LOAD_A(r, unused, none) v[r] = A_texel(a[r]++);
#if B_BY == TILES
#define LOAD_B(c, q) f0 = B_near(b, q); f1 = B_near(b, 2 + q); f2 = B_near(b, 4 + q); f3 = B_near(b, 6 + q);
#elif B_BY == COLUMNS
#define LOAD_B(c, unused) \
    f0 = B_texel(b + c.x >> 2); f1 = B_texel(b + c.x + b_step.x >> 2); \
    f2 = B_texel(b + c.x + 2 * b_step.x >> 2); f3 = B_texel(b + c.x + 3 * b_step.x >> 2);
#else
#define LOAD_B(c, unused) { \
    mat4 turned = transpose(mat4(B_texel(b + c.x >> 2), B_texel(b + c.y >> 2), \
        B_texel(b + c.z >> 2), B_texel(b + c.w >> 2))); \
    f0 = turned[0]; f1 = turned[1]; f2 = turned[2]; f3 = turned[3]; }
#endif
#if B_BY == TILES
#define NEXT_FOUR 8
#else
#define NEXT_FOUR 4 * b_step.x
#endif
#define ADD(r, q, unused) \
    sum[2 * r + q] += v[r].x * f0; sum[2 * r + q] += v[r].y * f1; sum[2 * r + q] += v[r].z * f2; sum[2 * r + q] += v[r].w * f3;
#define ADD_ONE(r, unused, none) \
    v[r].x = A(a[r]); a[r] += a_step.y; sum[2 * r] += v[r].x * f0; sum[2 * r + 1] += v[r].x * f1;
void multiply(ivec2 start, int first, int column, int k, int end, out vec4 sum[2 * ROWS]) {
#if B_BY == TILES
    int a[ROWS], b = (column / 8 * ((depth + 3) / 4) * 4 + k) * 2;
#else
    int a[ROWS], b = start.y + k * b_step.x;
    ivec4 low = min(column + ivec4(0, 1, 2, 3), ivec4(columns - 1)) * b_step.y;
    ivec4 high = min(column + ivec4(4, 5, 6, 7), ivec4(columns - 1)) * b_step.y;
#endif
    vec4 v[ROWS], f0, f1, f2, f3;
    for (int r = 0; r < ROWS; ++r) {
        a[r] = start.x + min(first + r, rows - 1) * a_step.x + k * a_step.y;
        sum[2 * r] = sum[2 * r + 1] = vec4(0.0);
    }
#if A_BY == DEPTH && B_BY != NEITHER
    if ((ALWAYS | whole) == 3) {
        for (int r = 0; r < ROWS; ++r) a[r] >>= 2; // texels in this loop
        for (; k + 3 < end; k += 4, b += NEXT_FOUR) {
            REPEAT(ROWS, LOAD_A, none, none)
            LOAD_B(low, 0)
            REPEAT(ROWS, ADD, 0, none)
            LOAD_B(high, 1)
            REPEAT(ROWS, ADD, 1, none)
        }
        for (int r = 0; r < ROWS; ++r) a[r] <<= 2;
    }
#endif
#if B_BY == TILES
    for (; k < end; ++k, b += 2) {
        f0 = B_texel(b);
        f1 = B_texel(b + 1);
        REPEAT(ROWS, ADD_ONE, none, none)
    }
#endif
#if B_BY == COLUMNS
    for (; ((ALWAYS | whole) & 2) == 2 && k < end; ++k, b += b_step.x) {
        f0 = B_texel(b + low.x >> 2);
        f1 = B_texel(b + high.x >> 2);
        REPEAT(ROWS, ADD_ONE, none, none)
    }
#endif
#if B_BY < COLUMNS || (ALWAYS & 2) == 0
    for (; k < end; ++k, b += b_step.x) {
        f0 = B_at(b + low);
        f1 = B_at(b + high);
        REPEAT(ROWS, ADD_ONE, none, none)
    }
#endif
}
// The results from the sums. The bias is (1) a row for all rows, or (2) a matrix.
void finish(inout vec4 sum[2 * ROWS], int first, int column) {
    ivec4 low = min(column + ivec4(0, 1, 2, 3), ivec4(columns - 1)) * c_step.y;
    ivec4 high = min(column + ivec4(4, 5, 6, 7), ivec4(columns - 1)) * c_step.y;
#if BIAS == 1
    vec4 more = beta * C_at(low), other = beta * C_at(high);
#elif BIAS == 0
    vec4 more = vec4(0.0), other = vec4(0.0);
#endif
    for (int r = 0; r < ROWS; ++r) {
#if BIAS == 2
        int row = min(first + r, rows - 1) * c_step.x;
        vec4 more = beta * C_at(row + low), other = beta * C_at(row + high);
#endif
        sum[2 * r] = epilogue_of_four(alpha * sum[2 * r] + more);
        sum[2 * r + 1] = epilogue_of_four(alpha * sum[2 * r + 1] + other);
    }
}
