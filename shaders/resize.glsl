//@ input X elements if not WHOLE, texels if WHOLE
//@ input I
//@ input W
//@ param ivec2 size
//@ param ivec2 outputs
//@ param ivec2 taps
//@ param int inner
//@ unit texel
// Two axes, which follow each other: each output element is a weighted sum of the input elements that its taps name.
// The tables of the first axis, (output, tap), come before those of the second one. With WHOLE, texels lie whole behind
// the axes, and `inner` counts texels.
#ifdef WHOLE
#define NUMBERS O_VECTOR
#define READ(at) X_texel(at)
#else
#define NUMBERS O_TYPE
#define READ(at) X(at)
#endif
NUMBERS sampled(int o) {
    int rest = o / inner, i = o - rest * inner, plane = rest / outputs.y;
    int second = outputs.x * taps.x + (rest - plane * outputs.y) * taps.y;
    rest = plane / outputs.x;
    int first = (plane - rest * outputs.x) * taps.x;
    NUMBERS total = NUMBERS(0);
    for (int j = 0; j < taps.x; ++j) {
        int line = (rest * size.x + int(I(first + j))) * size.y;
        float share = W(first + j);
        for (int k = 0; k < taps.y; ++k) {
            float weight = share * W(second + k);
            if (weight != 0.0) total += NUMBERS(weight) * READ((line + int(I(second + k))) * inner + i);
        }
    }
    return total;
}
O_VECTOR texel(int t) {
#ifdef WHOLE
    return sampled(t);
#else
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k) result[k] = sampled(min(t * 4 + k, O_size - 1));
    return result;
#endif
}
