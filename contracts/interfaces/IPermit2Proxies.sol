// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "./IPermit2.sol";

/// @notice An EIP-2612 permit of a token: its owner's approval of Permit2. `deadline` in unix seconds, inclusive.
struct Eip2612Permit {
    uint256 value;
    uint256 deadline;
    bytes32 r;
    bytes32 s;
    uint8 v;
}

/// @notice What the payer signs for scheme "exact" besides the permit. `validAfter` in unix seconds, inclusive.
struct ExactWitness {
    address to;
    uint256 validAfter;
}

/// @notice The same for scheme "upto".
struct UptoWitness {
    address to;
    address facilitator;
    uint256 validAfter;
}

/// @title What all contracts of x402 that use Permit2 have: they can submit the payer's approval of it
interface IPermit2Approval {
    event EIP2612PermitFailedWithReason(address indexed token, address indexed owner, string reason);
    event EIP2612PermitFailedWithPanic(address indexed token, address indexed owner, uint256 errorCode);
    event EIP2612PermitFailedWithData(address indexed token, address indexed owner, bytes data);

    error Permit2612AmountMismatch();
    error InvalidPermit2Address();

    // forge-lint: disable-next-line(mixed-case-function)
    function PERMIT2() external view returns (IPermit2);
}

/**
 * @title What both proxies of x402 have: they are the spender that payers name, and check the witness
 * @notice They hold nothing and have no owner. Their events name no payment.
 */
interface IPermit2Proxy is IPermit2Approval {
    event Settled();
    event SettledWithPermit();

    error InvalidAmount();
    error InvalidOwner();
    error InvalidDestination();
    error PaymentTooEarly();

    // forge-lint: disable-start(mixed-case-function)
    function WITNESS_TYPEHASH() external view returns (bytes32);
    function WITNESS_TYPE_STRING() external view returns (string memory);
    // forge-lint: disable-end(mixed-case-function)
}

/// @title The proxy of scheme "exact", `0x402085c248EeA27D92E8b30b2C58ed07f9E20001`
/// @notice Anyone may call it: it transfers the permitted amount, to the destination that the payer signed.
interface IExactPermit2Proxy is IPermit2Proxy {
    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        ExactWitness calldata witness,
        bytes calldata signature
    ) external;

    /// @notice First submits the token's own permit, for the permitted amount. Goes on when the token refuses that.
    function settleWithPermit(
        Eip2612Permit calldata permit2612,
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        ExactWitness calldata witness,
        bytes calldata signature
    ) external;
}

/// @title The proxy of scheme "upto", `0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002`
/// @notice Only the facilitator that the payer signed may call it: it chooses the amount, up to the permitted one.
interface IUptoPermit2Proxy is IPermit2Proxy {
    error AmountExceedsPermitted();
    error UnauthorizedFacilitator();

    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        UptoWitness calldata witness,
        bytes calldata signature
    ) external;

    /// @notice First submits the token's own permit, for the permitted amount. Goes on when the token refuses that.
    function settleWithPermit(
        Eip2612Permit calldata permit2612,
        IPermit2.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        UptoWitness calldata witness,
        bytes calldata signature
    ) external;
}
