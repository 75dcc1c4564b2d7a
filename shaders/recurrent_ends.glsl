//@ input R
//@ input H elements if HAS_HIDDEN
//@ input C elements if HAS_CELL
//@ input S
//@ input L elements if LENGTHS
//@ param int steps
//@ param int batch
//@ param int hidden
//@ param int pitch
//@ param int gates
//@ param int directions
//@ param int reverse
//@ param int batch_first
//@ param int which
//@ include sequences
// What comes before and after the steps of a recurrent layer (recurrent.glsl).
#if PART == PACK
// The weights of the recurrent products: (direction, four of the depth, gate, unit, depth of the four).
float element(int o) {
    int rest = o >> 2, k = rest % hidden;
    rest /= hidden;
    int gate = rest % gates;
    rest /= gates;
    int q = rest % (pitch >> 2), d = rest / (pitch >> 2), depth = q * 4 + (o & 3);
    return depth < hidden ? R(((d * gates + gate) * hidden + k) * hidden + depth) : 0.0;
}
#elif PART == BEGIN
// The first state, (direction, batch, unit, number).
float element(int o) {
    int number = o % NUMBERS, k = o / NUMBERS % pitch, row = o / NUMBERS / pitch, d = row / batch, b = row % batch;
    int at = (batch_first == 1 ? b * directions + d : row) * hidden + k;
    if (k >= hidden) return 0.0;
#ifdef HAS_CELL
    if (number == 1) return C(at);
#endif
#ifdef HAS_HIDDEN
    if (number == 0) return H(at);
#endif
    return 0.0;
}
#else
// The layer's outputs in the order and layout of the model: one number of the states of all steps (WHOLE), or of the
// last state. The state of a sequence without elements is zero.
float element(int o) {
    int k = o % hidden, rest = o / hidden, time = 0, d, b;
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
    return S((((time * directions + d) * batch + b) * pitch + k) * NUMBERS + which);
}
#endif
