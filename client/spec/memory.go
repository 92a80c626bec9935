package spec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseMemory parses an amount of memory and returns it in MB, rounded up: 1g, 1.5g,
// 512m, 2GiB. A number without a unit is an error: Hadoop's settings take it for MB, and
// others for GB.
func ParseMemory(s string) (int64, error) {
	bad := errors.New("write an amount of memory, as in 512m, 2g or 1.5g")
	text := strings.ToLower(strings.TrimSpace(s))
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(text[len(number):])
	var mb float64
	switch strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i") {
	case "":
		if _, err := strconv.ParseUint(number, 10, 63); err == nil && unit == "" { // else "b", "ib"
			return 0, fmt.Errorf("write %sg or %[1]sm", number)
		}
		return 0, bad
	case "m":
		mb = 1
	case "g":
		mb = 1 << 10
	case "t":
		mb = 1 << 20
	default:
		return 0, bad
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "+-_xXeEpP") || math.IsNaN(v) || v*mb > 1<<40 {
		return 0, bad
	}
	n := int64(math.Ceil(v * mb))
	if n < 1 {
		return 0, bad
	}
	return n, nil
}
