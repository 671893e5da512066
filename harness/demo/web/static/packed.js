// What a page in one file holds: bytes, as base64 of their gzip.

/** Unpack bytes; return them as a response, to be read as text or as an array. */
export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
