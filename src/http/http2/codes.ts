// The reasons that end streams and connections (RFC 9113, 7).

import { constants } from "node:http2";

/** Nothing is wrong. */
export const NO_ERROR: number = constants.NGHTTP2_NO_ERROR;
/** The stream is not wanted any more. */
export const CANCEL: number = constants.NGHTTP2_CANCEL;
/** The client asks for too much. */
export const ENHANCE_YOUR_CALM: number = constants.NGHTTP2_ENHANCE_YOUR_CALM;
