//@ input X
//@ input S texels
//@ input G texels
//@ input R texels
//@ input B elements if BIAS
//@ input P elements if PEEPHOLES
//@ input L elements if LENGTHS
//@ param int step
//@ param int steps
//@ param int batch
//@ param int hidden
//@ param int pitch
//@ param int gates
//@ param int reverse
//@ param int step_stride
//@ param int batch_stride
//@ param int input_forget
//@ param int lanes
//@ param int across
//@ unit texel, grid if SCATTERED
//@ long
//@ include together
//@ include sequences
// One step of a recurrent layer, for all directions: the products of the last state with R, and the new state. A row is
// a direction and one of the batch; its state has `pitch` units, of which `hidden` count, and the others are zero. A unit
// has NUMBERS numbers: its hidden state, and its cell. X holds the products of the inputs with W for all steps,
// (direction, step and batch, gate, hidden). R is (direction, four of the depth, gate, unit, depth of the four).
// GATES (CELL 1) are those of a GRU that its third product needs. A sequence that has ended keeps its state.
#define QUADS (pitch >> 2)
#ifdef BIAS
float bias(int d, int which, int k) { return B((d * 2 + which) * gates * hidden + k); }
#else
float bias(int d, int which, int k) { return 0.0; }
#endif
#ifdef PEEPHOLES
float peephole(int d, int gate, int k) { return P((d * 3 + gate) * hidden + k); }
#else
float peephole(int d, int gate, int k) { return 0.0; }
#endif
vec4 sum(vec4 a, vec4 b) { return a + b; }
TOGETHER_BY(sum_of, sum)
float input_part(int d, int b, int gate, int k) {
    int time = backwards(d) ? length_of(b) - 1 - step : step;
    return X((d * batch * steps + time * step_stride + b * batch_stride) * gates * hidden + gate * hidden + k)
        + bias(d, 0, gate * hidden + k);
}
vec4 state_of_four(int row, int q) {
#if NUMBERS == 2
    vec4 a = S_texel((row * QUADS + q) * 2), b = S_texel((row * QUADS + q) * 2 + 1);
    return vec4(a.x, a.z, b.x, b.z);
#elif CELL == GRU && PRODUCTS == 1
    return S_texel(row * QUADS + q) * G_texel((row * 2 + 1) * QUADS + q);
#else
    return S_texel(row * QUADS + q);
#endif
}
// The products of PRODUCTS gates, as far as a lane computes them.
vec4 products(int row, int gate, int k) {
    vec4 total = vec4(0.0);
    int d = row / batch;
    for (int q = lane(); q < QUADS; q += LANES) {
        vec4 state = state_of_four(row, q);
        int at = ((d * QUADS + q) * gates + gate) * hidden + min(k, hidden - 1);
        total.x += dot(state, R_texel(at));
#if PRODUCTS > 1
        total.y += dot(state, R_texel(at + hidden));
        total.z += dot(state, R_texel(at + 2 * hidden));
#endif
#if PRODUCTS > 3
        total.w += dot(state, R_texel(at + 3 * hidden));
#endif
    }
    return total;
}
// The new numbers of a unit.
vec2 unit_of(int row, int gate, int k, vec4 total) {
    int d = row / batch, b = row - d * batch;
    if (k >= hidden) return vec2(0.0);
#if NUMBERS == 2
    vec4 two = S_texel((row * pitch + k) >> 1);
    vec2 last = (k & 1) == 0 ? two.xy : two.zw;
#else
    vec2 last = vec2(S_texel((row * pitch + k) >> 2)[k & 3], 0.0);
#endif
    if (step >= length_of(b)) return last;
#define PRODUCT(number, g) (total[number] + bias(d, 1, (g) * hidden + k))
#define SUM(number, g) (PRODUCT(number, g) + input_part(d, b, g, k))
#if CELL == LSTM
    float into = activation_0(d, SUM(0, 0) + peephole(d, 0, k) * last.y);
    float forget = input_forget == 1 ? 1.0 - into : activation_0(d, SUM(2, 2) + peephole(d, 2, k) * last.y);
    float c = forget * last.y + into * activation_1(d, SUM(3, 3));
    return vec2(activation_0(d, SUM(1, 1) + peephole(d, 1, k) * c) * activation_2(d, c), c);
#elif CELL == GRU
#if PRODUCTS == 1
    float update = G_texel(row * 2 * QUADS + (k >> 2))[k & 3];
    float made = activation_1(d, SUM(0, 2));
#else
    float update = activation_0(d, SUM(0, 0)), reset = activation_0(d, SUM(1, 1));
    float made = activation_1(d, input_part(d, b, 2, k) + reset * PRODUCT(2, 2));
#endif
    return vec2((1.0 - update) * made + update * last.x, 0.0);
#else
    return vec2(activation_0(d, SUM(0, gate)), 0.0);
#endif
}
// Where a unit lies, and its first gate.
void find(int unit, out int row, out int gate, out int k) {
#if CELL == GATES
    row = unit / (2 * pitch);
    int rest = unit - row * 2 * pitch;
    gate = rest >= pitch ? 1 : 0;
    k = rest - gate * pitch;
#else
    row = unit / pitch;
    k = unit - row * pitch;
    gate = CELL == GRU && PRODUCTS == 1 ? 2 : 0;
#endif
}
#ifdef SCATTERED
void tile(ivec3 at) {
    int unit = result_of(at), last = O_size / NUMBERS - 1, row, gate, k;
    find(min(unit, last), row, gate, k);
    vec2 result = unit_of(row, gate, k, sum_of(products(row, gate, k)));
    if (lane() > 0 || unit > last) return;
    for (int n = 0; n < NUMBERS; ++n) store(unit * NUMBERS + n, result[n]);
}
#else
vec4 texel(int t) {
    vec4 result = vec4(0.0);
    for (int n = 0; n < 4 / NUMBERS; ++n) {
        int row, gate, k;
        find(t * 4 / NUMBERS + n, row, gate, k);
        vec2 found = unit_of(row, gate, k, products(row, gate, k));
        if (NUMBERS == 1) result[n] = found.x;
        else if (n == 0) result.xy = found;
        else result.zw = found;
    }
    return result;
}
#endif
