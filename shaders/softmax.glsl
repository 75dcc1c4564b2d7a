//@ input X
//@ input S
//@ param int size
//@ param int inner
//@ param int logarithm
// The softmax of each row, computed from its largest element and its sum of exponentials (norm.glsl).
float element(int o) {
    int row = o / (size * inner) * inner + o % inner;
    float shifted = X(o) - S(row * 2);
    return logarithm == 1 ? shifted - log(S(row * 2 + 1)) : exp(shifted) / S(row * 2 + 1);
}
