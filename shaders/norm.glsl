//@ input X
//@ param int size
//@ param int inner
// The two numbers of each row that softmax needs: its largest element and the sum of the exponentials of the rest to it.
float element(int o) {
    int row = o >> 1;
    int first = row / inner * size * inner + row % inner;
    float largest = X(first);
    for (int i = 1; i < size; ++i) largest = maximum(largest, X(first + i * inner));
    if ((o & 1) == 0) return largest;
    float total = 0.0;
    for (int i = 0; i < size; ++i) total += exp(X(first + i * inner) - largest);
    return total;
}
