package logs

import (
	"strings"
	"time"

	"holdfast/client"
)

// ParseSince reads a point in time before now: how long ago it was, as in 10m or 2h30m; or
// when, in RFC 3339, or by the clock of this machine as in 2026-01-31 14:05, with seconds or
// without, or 14:05, which was within the last day. With a Z at the end it is by UTC.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if utc, is := strings.CutSuffix(text, "Z"); is && err != nil { // 14:05Z
		text, now = utc, now.UTC()
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if err != nil {
			at, err = time.ParseInLocation(layout, text, now.Location())
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if err == nil {
			break
		}
		var clock time.Time
		if clock, err = time.Parse(layout, text); err == nil {
			day := func(ago int) time.Time {
				return time.Date(now.Year(), now.Month(), now.Day()-ago, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			}
			if at = day(0); at.After(now) {
				at = day(1)
			}
		}
	}
	if err != nil {
		return time.Time{}, client.Usagef("--since is %q: write how long ago, as in 10m or 2h, or when, as in 14:05, \"2026-01-31 14:05\" or 2026-01-31T14:05:00Z", text)
	}
	if at.After(now) {
		return time.Time{}, client.Usagef("--since %s is in the future: here it is %s", text, now.Format(time.RFC3339))
	}
	return at, nil
}
