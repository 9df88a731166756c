package testbed

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// NewRunID returns a fresh run id: ten letters and digits, 50 random bits.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:10]
}
