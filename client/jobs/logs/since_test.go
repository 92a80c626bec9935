package logs

import (
	"strings"
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 30, 15, 0, time.FixedZone("here", 2*3600))
	for text, want := range map[string]string{
		"10m": "2026-03-01T09:20:15+02:00", "2h30m": "2026-03-01T07:00:15+02:00", "0s": "2026-03-01T09:30:15+02:00",
		"2026-03-01T07:00:00Z": "2026-03-01T09:00:00+02:00", "2026-02-28 23:59": "2026-02-28T23:59:00+02:00", "2026-02-28T23:59:30": "2026-02-28T23:59:30+02:00", "2026-02-28": "2026-02-28T00:00:00+02:00",
		"09:30": "2026-03-01T09:30:00+02:00", "9:30:16": "2026-02-28T09:30:16+02:00", "14:05": "2026-02-28T14:05:00+02:00",
		"14:05Z": "2026-02-28T16:05:00+02:00", "07:30:15Z": "2026-03-01T09:30:15+02:00", "2026-02-28 23:59Z": "2026-03-01T01:59:00+02:00",
	} {
		got, err := ParseSince(text, now)
		if err != nil || got.In(now.Location()).Format(time.RFC3339) != want {
			t.Errorf("%s is %s (%v), want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"yesterday": "how long ago", "-5m": "how long ago", "5": "how long ago", "": "how long ago", "Z": "how long ago", "2027-01-01": "in the future"} {
		if got, err := ParseSince(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s (%v)", text, got, err)
		}
	}
}

// TestLineAt: the line that an offset is in is shown from its beginning.
func TestLineAt(t *testing.T) {
	long := strings.Repeat("x", chunk+10)
	text := "ab\ncd\n" + long
	for offset, want := range map[int64]int64{0: 0, 1: 0, 2: 0, 3: 3, 4: 3, 6: 6, 100: 6, chunk + 10: chunk + 10, int64(len(text)): int64(len(text))} {
		if got, err := lineAt(strings.NewReader(text), offset, int64(len(text))); err != nil || got != want {
			t.Errorf("offset %d is in the line at %d (%v), want %d", offset, got, err, want)
		}
	}
}
