package client

import (
	"fmt"
	"slices"
	"strings"
)

// DidYouMean returns a suggestion for a word that is none of known, to be appended to a
// message: "; did you mean status?". It is empty if none is similar.
func DidYouMean(word string, known []string) string {
	return DidYouMeanWithin(word, known, 1+len(word)/4)
}

// DidYouMeanWithin is DidYouMean with a maximum edit distance.
func DidYouMeanWithin(word string, known []string, most int) string {
	var like []string
	best := most
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if d > best || d >= len(k) || slices.Contains(like, k) {
			continue
		}
		if d < best {
			like = nil
		}
		best = d
		like = append(like, k)
	}
	if len(like) == 0 || len(like) > 3 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(like, " or "))
}

// distance returns the optimal string alignment distance: the number of insertions,
// deletions, substitutions and transpositions of adjacent letters that turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for k := range rows[0] {
		rows[0][k] = k
	}
	for i := 1; i <= len(x); i++ {
		for k := 1; k <= len(y); k++ {
			replaced := rows[i-1][k-1]
			if x[i-1] != y[k-1] {
				replaced++
			}
			rows[i][k] = min(replaced, rows[i-1][k]+1, rows[i][k-1]+1)
			if i > 1 && k > 1 && x[i-1] == y[k-2] && x[i-2] == y[k-1] {
				rows[i][k] = min(rows[i][k], rows[i-2][k-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
