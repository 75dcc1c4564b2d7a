//@ input X
//@ param int rows
//@ param int columns
//@ param int offset
//@ param int upper
// Matrices with zeros below a diagonal (upper) or above it.
O_TYPE element(int o) {
    int row = o / columns, distance = o - row * columns - row % rows - offset;
    return (upper == 1 ? distance >= 0 : distance <= 0) ? X(o) : O_TYPE(0);
}
