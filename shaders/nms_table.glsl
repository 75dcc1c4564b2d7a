//@ input S
//@ input I
//@ param int boxes
//@ param int classes
//@ param int picks
// Rows of (batch, class, box), `picks` rows for each class. S counts the kept candidates: the k-th row has the first
// candidate at which S reaches k. Empty rows are -1.
int element(int o) {
    int pick = o / 3 % picks, row = o / 3 / picks, begin = row * boxes, low = 0, high = boxes - 1;
    if (pick >= int(S(begin + high))) return -1;
    if (o % 3 < 2) return o % 3 == 0 ? row / classes : row % classes;
    while (low < high) {
        int middle = (low + high) / 2;
        if (int(S(begin + middle)) > pick) high = middle;
        else low = middle + 1;
    }
    return int(I(begin + low));
}
