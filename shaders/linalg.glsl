//@ input X
//@ param int size
//@ param int fresh
//@ long
// A step of Gaussian elimination with partial pivoting. The product of the pivots so far lies before the elements of
// each matrix; a fresh matrix has none. The output has the product with the new pivot, and then all rows but the
// pivot's, without their first column.
float element(int o) {
    int rest = size - 1, each = rest * rest + 1, matrix = o / each, at = o - matrix * each;
    int first = matrix * (size * size + 1 - fresh) + 1 - fresh, pivot = 0;
    float largest = abs(X(first));
    for (int r = 1; r < size; ++r) {
        float value = abs(X(first + r * size));
        if (value > largest) {
            largest = value;
            pivot = r;
        }
    }
    float head = X(first + pivot * size);
    if (at == 0) { // the pivot's row moves up past `pivot` rows, and each of these changes the sign
        float product = fresh == 1 ? head : X(first - 1) * head;
        return (pivot & 1) == 1 ? -product : product;
    }
    int row = (at - 1) / rest, column = at - row * rest;
    row += row >= pivot ? 1 : 0;
    float factor = head == 0.0 ? 0.0 : X(first + row * size) / head;
    return X(first + row * size + column) - factor * X(first + pivot * size + column);
}
