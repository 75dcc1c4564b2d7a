//@ input I
//@ param int size
// An index counted from the front: a negative one counts from the end of `size` elements.
int element(int o) {
    int index = int(I(o));
    return index < 0 ? index + size : index;
}
