package token

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Delegation is the content of a delegation token's identifier
// (AbstractDelegationTokenIdentifier).
type Delegation struct {
	Owner, Renewer string // as the service has stored them: often whole principals
	Issued, Max    time.Time
}

// Delegation reads the identifier of a delegation token of HDFS, the KMS or the RM.
func (t Token) Delegation() (Delegation, error) {
	var d Delegation
	switch t.Kind {
	case KindHDFS, KindKMS:
		// A version byte 0; owner, renewer, real user as Text; issue and maximum
		// date as vlong; sequence and key numbers follow.
		r := &reader{b: t.Identifier}
		if len(r.b) == 0 || r.b[0] != 0 {
			return d, fmt.Errorf("the identifier of a %s has an unknown version", t)
		}
		r.b = r.b[1:]
		d.Owner, d.Renewer = r.string(), r.string()
		r.string()
		d.Issued, d.Max = time.UnixMilli(r.vlong()), time.UnixMilli(r.vlong())
		if r.err != nil {
			return d, fmt.Errorf("the identifier of a %s: %w", t, r.err)
		}
		return d, nil
	case KindRM:
		// YARNDelegationTokenIdentifierProto.
		for b := t.Identifier; len(b) > 0; {
			n, kind, l := protowire.ConsumeTag(b)
			if l < 0 {
				return d, fmt.Errorf("the identifier of a %s: %w", t, protowire.ParseError(l))
			}
			b = b[l:]
			if l = protowire.ConsumeFieldValue(n, kind, b); l < 0 {
				return d, fmt.Errorf("the identifier of a %s: %w", t, protowire.ParseError(l))
			}
			text, _ := protowire.ConsumeBytes(b)
			number, _ := protowire.ConsumeVarint(b)
			switch {
			case n == 1 && kind == protowire.BytesType:
				d.Owner = string(text)
			case n == 2 && kind == protowire.BytesType:
				d.Renewer = string(text)
			case n == 4 && kind == protowire.VarintType:
				d.Issued = time.UnixMilli(int64(number))
			case n == 5 && kind == protowire.VarintType:
				d.Max = time.UnixMilli(int64(number))
			}
			b = b[l:]
		}
		return d, nil
	}
	return d, fmt.Errorf("a %s is no delegation token", t)
}
