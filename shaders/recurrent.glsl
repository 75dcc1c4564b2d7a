//@ input X
//@ input H
//@ input C
//@ input G
//@ input D
//@ input R
//@ input B
//@ input P
//@ input L
//@ param int step
//@ param int steps
//@ param int batch
//@ param int hidden
//@ param int gates
//@ param int first
//@ param int used
//@ param int reverse
//@ param int step_stride
//@ param int batch_stride
//@ param int linear_before_reset
//@ param int input_forget
//@ param int batch_first
// The parts of one step of a recurrent layer. Each part serves all directions: states are (direction, batch, hidden). X
// holds the products of the inputs with W for all steps, (direction, step and batch, gate, hidden). A sequence that has
// ended keeps its state.
#define LONG
#ifdef LENGTHS
int length_of(int b) { return min(max(int(L(b)), 0), steps); }
#else
int length_of(int b) { return steps; }
#endif
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
bool backwards(int d) { return (reverse >> d & 1) == 1; }
#if PART == GATES || PART == GRU
float input_part(int d, int b, int k) {
    int time = backwards(d) ? length_of(b) - 1 - step : step;
    return X(((d * batch * steps) + time * step_stride + b * batch_stride) * gates * hidden + k) + bias(d, 0, k);
}
#endif
#if PART == GATES
// The gates that are products of the last hidden state: activated, or as plain sums.
float element(int o) {
    int k = o % used + first, row = o / used, d = row / batch, b = row % batch;
    if (step >= length_of(b)) return KEPT;
    float total = input_part(d, b, k) + bias(d, 1, k);
    int at = (d * gates * hidden + k) * hidden;
    for (int j = 0; j < hidden; ++j) total += H(row * hidden + j) * R(at + j);
    return ACTIVATE(d, total);
}
#elif PART == GRU
// The new hidden state of a GRU, computed from its update and reset gates (G).
float element(int o) {
    int k = o % hidden, row = o / hidden, d = row / batch, b = row % batch, gate = row * 2 * hidden;
    if (step >= length_of(b)) return H(o);
    int third = 2 * hidden + k, at = (d * gates * hidden + third) * hidden;
    float total = bias(d, 1, third);
    for (int j = 0; j < hidden; ++j)
        total += (linear_before_reset == 1 ? 1.0 : G(gate + hidden + j)) * H(row * hidden + j) * R(at + j);
    float update = G(gate + k);
    float reset = linear_before_reset == 1 ? G(gate + hidden + k) : 1.0;
    float made = activation_1(d, input_part(d, b, third) + reset * total);
    return (1.0 - update) * made + update * H(o);
}
#elif PART == CELL
// The new cell state of an LSTM, computed from the sums of its gates: input, output, forget, cell.
float element(int o) {
    int k = o % hidden, row = o / hidden, d = row / batch, gate = row * 4 * hidden + k;
    float c = C(o);
    if (step >= length_of(row % batch)) return c;
    float into = activation_0(d, G(gate) + peephole(d, 0, k) * c);
    float forget = input_forget == 1 ? 1.0 - into : activation_0(d, G(gate + 2 * hidden) + peephole(d, 2, k) * c);
    return forget * c + into * activation_1(d, G(gate + 3 * hidden));
}
#elif PART == HIDDEN
// The new hidden state of an LSTM, computed from its output gate and its new cell state (D).
float element(int o) {
    int k = o % hidden, row = o / hidden, d = row / batch;
    if (step >= length_of(row % batch)) return H(o);
    float c = D(o);
    return activation_0(d, G(row * 4 * hidden + hidden + k) + peephole(d, 1, k) * c) * activation_2(d, c);
}
#else
// The layer's outputs in the order and layout of the model. H holds the states of all steps (WHOLE), or only the last
// state. The state of a sequence without elements is zero.
float element(int o) {
    int k = o % hidden, rest = o / hidden, directions = used, time = 0, d, b;
    if (batch_first == 1) {
        d = rest % directions;
        rest /= directions;
        if (WHOLE == 1) { time = rest % steps; rest /= steps; }
        b = rest;
    } else {
        b = rest % batch;
        rest /= batch;
        d = rest % directions;
        time = rest / directions;
    }
    int length = length_of(b);
    if (WHOLE == 1 ? time >= length : length == 0) return 0.0;
    if (WHOLE == 1 && backwards(d)) time = length - 1 - time;
    return H(((time * directions + d) * batch + b) * hidden + k);
}
#endif
