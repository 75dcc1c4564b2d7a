//@ input S
//@ param int parts
// The two numbers of each row from those of its parts.
float element(int o) {
    int first = (o >> 1) * parts * 2;
    float largest = S(first);
    for (int k = 1; k < parts; ++k) largest = maximum(largest, S(first + k * 2));
    if ((o & 1) == 0) return largest;
    float total = 0.0;
    for (int k = 0; k < parts; ++k) total += S(first + k * 2 + 1) * exp(S(first + k * 2) - largest);
    return total;
}
