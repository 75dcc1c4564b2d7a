//@ input R
//@ input I
//@ param int inner
//@ param int count
//@ param int held
//@ param int part
//@ param int parts
//@ param int fresh
//@ long
// The first `count` candidates of each part, in order; -1 where a part holds fewer. The last ones, of a single part, are
// in the output's layout.
int element(int o) {
    int row = parts == 1 ? o / inner / count * inner + o % inner : o / (parts * count);
    int rank = parts == 1 ? o / inner % count : o % count;
    int begin = parts == 1 ? 0 : o / count % parts * part, end = min(begin + part, held), found = -1;
    for (int i = begin; i < end; ++i)
        if (int(R(row * held + i)) == rank) found = fresh == 1 ? i : int(I(row * held + i));
    return found;
}
