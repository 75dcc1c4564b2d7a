//@ input X elements if SCATTERED, texels if not SCATTERED
//@ param int rows
//@ param int columns
//@ param int across
//@ unit texel
// The elements of planes from their tiles of ROWS rows by eight columns. Texels may lie in two rows (SCATTERED).
int place(int line, int column) {
    int plane = line / rows, row = line - plane * rows, down = (rows + ROWS - 1) / ROWS;
    return ((plane * down + row / ROWS) * across + (column >> 3)) * (ROWS * 8) + (row & ROWS - 1) * 8 + (column & 7);
}
O_VECTOR texel(int t) {
    int line = t * 4 / columns, column = t * 4 - line * columns;
#ifdef SCATTERED
    ivec4 places;
    for (int k = 0; k < 4; ++k) {
        places[k] = place(line, column);
        if (++column == columns && (line + 1) * columns < O_size) {
            column = 0;
            ++line;
        }
    }
    return X_at(places);
#else
    return X_texel(place(line, column) >> 2);
#endif
}
