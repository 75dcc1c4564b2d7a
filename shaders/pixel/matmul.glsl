//@ input A elements texels
//@ input B elements texels
//@ input C
//@ param ivec4 batch[2]
//@ param ivec4 a_batch[2]
//@ param ivec4 b_batch[2]
//@ param ivec2 base
//@ param ivec2 a_step
//@ param ivec2 b_step
//@ param ivec2 c_step
//@ param int rank
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int across
//@ param int whole
//@ param float alpha
//@ param float beta
//@ unit strip
// A tile of ROWS rows by eight columns, row after row. The tiles of a plane lie one after the other, `across` in a row.
//@ include product
//@ include four
//@ include repeat
//@ include tile
void strip(int begin, out vec4 result[TEXELS]) {
    int index = begin / TEXELS, down = (rows + ROWS - 1) / ROWS, line = index / across, plane = line / down;
    int first = (line - plane * down) * ROWS, column = (index - line * across) * 8;
    multiply(planes(plane), first, column, 0, depth, result);
    finish(result, first, column);
}
