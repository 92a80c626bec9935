package kerberos

import "testing"

func TestShortName(t *testing.T) {
	const rules = `RULE:[2:$1@$0](nn@.*CORP\.TEST)s/.*/hdfs/
RULE:[2:$1;$2](^.*;admin$)s/;admin$//
RULE:[1:$1@$0](.*@PARTNER\.TEST)s/@PARTNER\.TEST/_p/L
RULE:[1:$1@$0](.*@SWAP\.TEST)s/(.)(.)@.*/$2$1/
RULE:[1:$1](x.*)s/a/b/g
DEFAULT`
	for principal, want := range map[string]string{
		"alice@CORP.TEST":        "alice",
		"nn/host1@CORP.TEST":     "hdfs",
		"root/admin@CORP.TEST":   "root",
		"Bob@PARTNER.TEST":       "bob_p",
		"ab@SWAP.TEST":           "ba",
		"xaa@CORP.TEST":          "xbb",
		"svc/host1@CORP.TEST":    "svc",
		"mallory@ELSEWHERE.TEST": "",
		"plain":                  "plain",
	} {
		if got, err := shortName(principal, "CORP.TEST", rules); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", principal, got, err)
		}
	}
	if got, err := shortName("alice@CORP.TEST", "CORP.TEST", " "); got != "alice" || err != nil {
		t.Errorf("without rules: %q, %v", got, err)
	}
	if _, err := shortName("alice@CORP.TEST", "CORP.TEST", "RULE:1:$1"); err == nil {
		t.Error("a rule that is none is taken")
	}
}
