package proto

import "net/url"

// ShownURL returns a URL for people, without what may be a secret: its scheme and its host,
// and whether there is more.
func ShownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "(hidden)"
	}
	shown := u.Scheme + "://" + u.Host
	if *u == (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return shown
	}
	return shown + "/(hidden)"
}
