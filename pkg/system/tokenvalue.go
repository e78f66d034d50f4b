package system

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TokenPrefix begins the value of every personal access token. The whole is svc_pat_<id>_<secret><check>: the id in 24
// hex digits, then in base 62 a secret of 256 random bits and the CRC-32 of all that is before, which tells a
// mistyped value from a real one without a look into the store.
const TokenPrefix = "svc_pat_"

const (
	tokenIDLen     = 24
	tokenSecretLen = 43 // 62^43 > 2^256
	tokenCheckLen  = 6  // 62^6 > 2^32
	tokenLen       = len(TokenPrefix) + tokenIDLen + 1 + tokenSecretLen + tokenCheckLen
)

func newTokenValue(id bson.ObjectID) string {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // it never fails
	head := TokenPrefix + id.Hex() + "_" + base62(new(big.Int).SetBytes(secret), tokenSecretLen)
	return head + tokenCheck(head)
}

func tokenCheck(head string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(head)))), tokenCheckLen)
}

// base62 writes a number in a fixed number of digits.
func base62(n *big.Int, digits int) string {
	s := n.Text(62)
	return strings.Repeat("0", digits-len(s)) + s
}

// ParseToken gives the id of the token that a value is of, and false for what can't be a value. It does not say that
// there is such a token.
func ParseToken(value string) (id bson.ObjectID, ok bool) {
	if len(value) != tokenLen || !strings.HasPrefix(value, TokenPrefix) {
		return id, false
	}
	head, check := value[:tokenLen-tokenCheckLen], value[tokenLen-tokenCheckLen:]
	hex, secret, ok := strings.Cut(head[len(TokenPrefix):], "_")
	if !ok || len(hex) != tokenIDLen || strings.ToLower(hex) != hex || strings.ContainsFunc(secret, noBase62) || tokenCheck(head) != check {
		return id, false
	}
	id, err := bson.ObjectIDFromHex(hex)
	return id, err == nil
}

func noBase62(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// HashOf gives the hash that is stored for a token's value. Its key is in another collection than the hashes, so that
// these alone tell nothing.
func (ts *Tokens) HashOf(ctx context.Context, value string) ([]byte, error) {
	key, err := ts.key(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(value))
	return mac.Sum(nil), nil
}

// key gives the key of the hashes, which never changes.
func (ts *Tokens) key(ctx context.Context) ([]byte, error) {
	ts.mu.Lock()
	key := ts.hashKey
	ts.mu.Unlock()
	if key != nil {
		return key, nil
	}
	key, err := ts.secrets.tokenKey(ctx)
	if err != nil {
		return nil, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.hashKey = key
	return key, nil
}
