package sasl

import (
	"errors"
	"fmt"
)

// ErrMalformed is what Guard returns instead of a panic.
var ErrMalformed = errors.New("it is malformed")

// Guard calls f, which has gokrb5 read what somebody else has written. gokrb5 takes the lengths
// and counts in that for true, and panics where they are not; Guard makes that ErrMalformed. No
// such call is made without it, and none on a goroutine of gokrb5's.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w (%v)", ErrMalformed, p)
		}
	}()
	return f()
}
