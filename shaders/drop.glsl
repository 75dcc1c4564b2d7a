//@ input X
//@ input U
//@ input R
//@ input T
// An element is dropped, and becomes 0, if its random number U is below the ratio R. Kept elements are scaled so that
// the mean stays. MASK: whether the element is kept. Outside of training (T is 0) every element stays as it is.
O_TYPE element(int o) {
    float ratio = R(0);
    bool trains = int(T(0)) != 0, kept = !trains || U(o) >= ratio;
#if MASK
    return O_TYPE(kept);
#else
    return kept ? (trains && ratio != 0.0 ? X(o) * (1.0 / (1.0 - ratio)) : X(o)) : 0.0;
#endif
}
