//@ input X elements, texels if WHOLE
//@ input W texels
//@ input S texels
//@ input Z texels if ZEROS
//@ input C
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int block
//@ param int words
//@ param int blocks
//@ param int zero_words
//@ param int has_bias
//@ param int across
//@ unit strip
// A tile of ROWS rows by eight columns of a product with packed weights, row after row. The tiles lie one after the
// other, `across` in a row.
//@ include packed
//@ include four
//@ include repeat
//@ include packed_tile
void strip(int begin, out vec4 result[TEXELS]) {
    int index = begin / TEXELS, line = index / across, column = (index - line * across) * 8;
    multiply(line * ROWS, column, 0, words, result);
    finish(result, column);
}
