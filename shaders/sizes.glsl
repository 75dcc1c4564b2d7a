//@ param ivec4 numbers[2]
// Up to eight numbers.
O_TYPE element(int o) { return O_TYPE(numbers[o >> 2][o & 3]); }
