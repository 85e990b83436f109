// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"encoding/pem"
	"iter"
)

// The types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	pkcs8Block       = "PRIVATE KEY"
	pkcs1Block       = "RSA PRIVATE KEY"
	sec1Block        = "EC PRIVATE KEY"
	crlBlock         = "X509 CRL"
)

const beginning = "-----BEGIN "

// blocks yields the PEM blocks of a text, and nil for a broken block, after which proxies stop
// reading. encoding/pem skips broken blocks.
func blocks(text []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for {
			if text = fromBeginning(text); len(text) == 0 {
				return
			}
			block, rest := pem.Decode(text)
			if block == nil || !isWhole(text[len(beginning):len(text)-len(rest)]) {
				yield(nil)
				return
			}
			if text = rest; !yield(block) {
				return
			}
		}
	}
}

// isWhole reports whether a text, from its first block on, is exactly one block without blank
// lines. Envoy 1.36 parses the lines before a blank line as headers.
func isWhole(text []byte) bool {
	return len(fromBeginning(text)) == 0 && !bytes.Contains(bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\r"), nil), []byte("\n\n"))
}

// fromBeginning returns a text from the first line that begins a block.
func fromBeginning(text []byte) []byte {
	if bytes.HasPrefix(text, []byte(beginning)) {
		return text
	}
	if i := bytes.Index(text, []byte("\n"+beginning)); i >= 0 {
		return text[i+1:]
	}
	return nil
}
