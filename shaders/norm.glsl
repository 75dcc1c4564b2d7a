//@ input X
//@ param int size
//@ param int inner
//@ param int run
//@ param int parts
// Two numbers for each part of each row: its largest element, and the sum of the exponentials of the others to it.
float element(int o) {
    int pair = o >> 1;
    int row = pair / parts, begin = (pair - row * parts) * run;
    int first = row / inner * size * inner + row % inner;
    int end = min(begin + run, size);
    float largest = X(first + begin * inner);
    for (int i = begin + 1; i < end; ++i) largest = maximum(largest, X(first + i * inner));
    if ((o & 1) == 0) return largest;
    float total = 0.0;
    for (int i = begin; i < end; ++i) total += exp(X(first + i * inner) - largest);
    return total;
}
