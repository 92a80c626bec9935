package yarn

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
)

// Amount is how much there is of a resource type other than memory, vcores and GPUs: a
// number of a unit. Units are Hadoop's (UnitsConversionUtil): n, u, m, none, k, M, G, T, P by
// thousands, and Ki, Mi, Gi, Ti, Pi by 1024.
type Amount struct {
	Value int64
	Unit  string
}

// units are by how much each unit multiplies.
var units = map[string]*big.Rat{
	"p": big.NewRat(1, 1e12), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3), "": big.NewRat(1, 1),
	"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1), "P": big.NewRat(1e15, 1),
	"Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50, 1),
}

var amountForm = regexp.MustCompile(`^([0-9]+)([A-Za-z]*)$`)

// ParseAmount parses a number with a unit, as 4 or 100Gi.
func ParseAmount(text string) (Amount, error) {
	m := amountForm.FindStringSubmatch(text)
	if m == nil {
		return Amount{}, errors.New("write a whole number, with a unit if need be, as in 2 or 100G")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Amount{}, errors.New("write a number below 2^63")
	}
	if units[m[2]] == nil {
		return Amount{}, fmt.Errorf("YARN has no unit %q: write one of k, M, G, T, P, or Ki, Mi, Gi, Ti, Pi, or none", m[2])
	}
	return Amount{n, m[2]}, nil
}

// String is the form that ParseAmount reads.
func (a Amount) String() string { return strconv.FormatInt(a.Value, 10) + a.Unit }

// In returns the amount in another unit, rounded up. What is too large for that is the most
// that there can be, and what has an unknown unit stays as it is.
func (a Amount) In(unit string) Amount {
	if a.Unit == unit || units[a.Unit] == nil || units[unit] == nil {
		return a
	}
	q := new(big.Rat).Quo(a.rat(), units[unit])
	n := new(big.Int).Add(q.Num(), new(big.Int).Sub(q.Denom(), big.NewInt(1)))
	n.Quo(n, q.Denom())
	if !n.IsInt64() {
		return Amount{math.MaxInt64, unit}
	}
	return Amount{n.Int64(), unit}
}

// Compare is as cmp.Compare.
func (a Amount) Compare(b Amount) int {
	if a.Unit == b.Unit || units[a.Unit] == nil || units[b.Unit] == nil {
		return cmp.Compare(a.Value, b.Value)
	}
	return a.rat().Cmp(b.rat())
}

// Minus returns a minus b, in the unit of a.
func (a Amount) Minus(b Amount) Amount { return Amount{a.Value - b.In(a.Unit).Value, a.Unit} }

// Times returns how many times b goes into a; b is not zero.
func (a Amount) Times(b Amount) int64 {
	if b = b.In(a.Unit); b.Value <= 0 {
		return math.MaxInt64
	}
	return a.Value / b.Value
}

func (a Amount) rat() *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt64(a.Value), units[a.Unit])
}
