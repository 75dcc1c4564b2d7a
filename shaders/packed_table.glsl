//@ input W
//@ input S
//@ input Z elements if ZEROS
//@ input I
//@ param int columns
//@ param int depth
//@ param int block
//@ param int words
//@ param int blocks
//@ param int zero_words
// Columns of packed weights, EACH in a word, at the indices I; outside the columns it reads 0. layers/packed.py describes
// the order of W, S and Z.
int at(int column, int count, int row) { return ((column >> 4) * count + row) * 16 + (column & 15); }
int code(int word, int place) { return word << (32 - 32 / EACH * (place + 1)) >> (32 - 32 / EACH); }
float element(int o) {
    int index = o / depth, k = o - index * depth, column = int(I(index));
    column += column < 0 ? columns : 0;
    if (column < 0 || column >= columns) return 0.0;
    int b = k / block, value = code(W(at(column, words, k / EACH)), k % EACH);
#ifdef ZEROS
    value -= code(Z(at(column, zero_words, b / EACH)), b % EACH);
#endif
    return float(value) * S(at(column, blocks, b));
}
