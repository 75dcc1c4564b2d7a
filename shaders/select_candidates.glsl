//@ input R
//@ param int size
//@ param int part
//@ param int parts
//@ param int kept
//@ long
// The indices of the first `kept` elements of each part, in order of their ranks R; -1 where a part has fewer.
int element(int o) {
    int row = o / (parts * kept), rank = o % kept, begin = o / kept % parts * part, found = -1;
    for (int i = begin; i < min(begin + part, size); ++i)
        if (int(R(row * size + i)) == rank) found = i;
    return found;
}
