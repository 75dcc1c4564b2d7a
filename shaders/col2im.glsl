//@ input X
//@ param ivec4 size
//@ param ivec4 columns
//@ param ivec4 kernel
//@ param ivec4 stride
//@ param ivec4 dilation
//@ param ivec4 begin
//@ long
// Each element of a picture sums the block elements that lie on it. X is (plane, element of the block, column).
O_TYPE element(int o) {
    int x = o % size.z, y = o / size.z % size.y, rest = o / (size.z * size.y);
    int z = rest % size.x, plane = rest / size.x;
    O_TYPE total = O_TYPE(0);
    for (int i = 0; i < kernel.x; ++i) {
        int a = z + begin.x - i * dilation.x;
        if (a < 0 || a % stride.x != 0 || a / stride.x >= columns.x) continue;
        for (int j = 0; j < kernel.y; ++j) {
            int b = y + begin.y - j * dilation.y;
            if (b < 0 || b % stride.y != 0 || b / stride.y >= columns.y) continue;
            for (int k = 0; k < kernel.z; ++k) {
                int c = x + begin.z - k * dilation.z;
                if (c < 0 || c % stride.z != 0 || c / stride.z >= columns.z) continue;
                int row = ((plane * kernel.x + i) * kernel.y + j) * kernel.z + k;
                total += X(((row * columns.x + a / stride.x) * columns.y + b / stride.y) * columns.z + c / stride.z);
            }
        }
    }
    return WRAPPED(total);
}
