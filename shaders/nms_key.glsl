//@ input X
//@ input L
//@ param int bounded
// What ascending order puts candidates first by, the best of them at the front, and what is no candidate (NaN) last.
float element(int o) {
    float score = X(o);
    return bounded == 0 || score > L(0) ? -score : uintBitsToFloat(0x7fc00000u);
}
