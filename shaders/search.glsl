//@ input S
//@ input U
//@ param int size
//@ param int samples
// For each sample, the first class of its row at which the running sum exceeds the fraction U of the whole.
int element(int o) {
    int first = o / samples * size, low = 0, high = size - 1;
    float whole = S(first + high), wanted = U(o) * whole;
    while (low < high) {
        int middle = (low + high) / 2;
        float sum = S(first + middle);
        if (sum > wanted || sum >= whole) high = middle;
        else low = middle + 1;
    }
    return low;
}
