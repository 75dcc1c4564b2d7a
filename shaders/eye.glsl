//@ param int columns
//@ param int offset
// Ones on a diagonal.
O_TYPE element(int o) {
    int row = o / columns;
    return O_TYPE(o - row * columns - row == offset ? 1 : 0);
}
