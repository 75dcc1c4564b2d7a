// The last steps of an element of a product.
O_TYPE finish(O_TYPE total, int row, int column) {
    O_TYPE value = O_TYPE(alpha) * total;
    if (has_bias == 1) value += O_TYPE(beta) * C(row * c_step.x + column * c_step.y);
    return epilogue(value);
}
