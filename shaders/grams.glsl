//@ input X
//@ input G
//@ input B
//@ input C
//@ input W
//@ param int length
//@ param int columns
//@ param int reach
//@ param int once
//@ long
// The total weight of a column's grams in a row of `length` words. A gram matches at every distance between its words
// up to `reach`. Gram g has the words of G from B(g) up to B(g + 1), and the weight W(g). Column c has the grams from
// C(c) up to C(c + 1).
float element(int o) {
    int row = o / columns * length, column = o % columns;
    float total = 0.0;
    for (int g = int(C(column)); g < int(C(column + 1)); ++g) {
        int first = int(B(g)), others = int(B(g + 1)) - first - 1, count = 0;
        for (int distance = 1; distance <= (others > 0 ? reach : 1); ++distance)
            for (int at = 0; at < length - distance * others; ++at) {
                bool same = true;
                for (int k = 0; k <= others && same; ++k) same = int(X(row + at + k * distance)) == int(G(first + k));
                if (same) ++count;
            }
        total += W(g) * float(once == 1 ? min(count, 1) : count);
    }
    return total;
}
