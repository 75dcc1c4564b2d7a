//@ input X
//@ input I
//@ input W
//@ param int size
//@ param int inner
//@ param int outputs
//@ param int taps
// One axis: each output element is a weighted sum of the input elements that its taps name.
#define LONG
O_TYPE element(int o) {
    int i = o % inner, rest = o / inner;
    int at = rest % outputs * taps, plane = rest / outputs * size;
    O_TYPE total = O_TYPE(0);
    for (int k = 0; k < taps; ++k) {
        float weight = W(at + k);
        if (weight != 0.0) total += O_TYPE(weight) * X((plane + int(I(at + k))) * inner + i);
    }
    return total;
}
