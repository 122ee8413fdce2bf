// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../../interfaces/IPermit2.sol";
import {IExactPermit2Proxy, IPermit2Proxy, IUptoPermit2Proxy} from "../../interfaces/IPermit2Proxies.sol";
import {MockExactPermit2Proxy} from "../../mocks/MockExactPermit2Proxy.sol";
import {MockPermit2} from "../../mocks/MockPermit2.sol";
import {MockUptoPermit2Proxy} from "../../mocks/MockUptoPermit2Proxy.sol";
import {Test} from "./Test.sol";

/// @title Permit2 and the proxies of x402, where they stand on every chain
abstract contract Permit2Deployment is Test {
    IPermit2 internal constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);
    IExactPermit2Proxy internal constant EXACT_PROXY =
        IExactPermit2Proxy(0x402085c248EeA27D92E8b30b2C58ed07f9E20001);
    IUptoPermit2Proxy internal constant UPTO_PROXY =
        IUptoPermit2Proxy(0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002);

    bytes32 private constant TOKEN_PERMISSIONS_TYPEHASH =
        keccak256("TokenPermissions(address token,uint256 amount)");

    function deployPermit2() internal {
        vm.etch(address(PERMIT2), deployedCodeOf("MockPermit2"));
    }

    /// @dev The published code, as it stands on a chain with Foundry's own id.
    function deployOriginalPermit2() internal {
        string memory file =
            vm.readFile("node_modules/@uniswap/v4-periphery/lib/permit2/test/utils/DeployPermit2.sol");
        string memory code = vm.split(vm.split(file, "hex\"")[1], "\"")[0];
        vm.etch(address(PERMIT2), vm.parseBytes(string.concat("0x", code)));
    }

    function deployPermit2Proxies() internal {
        construct(address(EXACT_PROXY), codeOf("MockExactPermit2Proxy"));
        construct(address(UPTO_PROXY), codeOf("MockUptoPermit2Proxy"));
    }

    /// @dev Runs a constructor at a given address.
    function construct(address where, bytes memory initCode) internal {
        vm.etch(where, initCode);
        (bool success, bytes memory code) = where.call("");
        assertTrue(success, "constructor");
        vm.etch(where, code);
    }

    function exactWitness(address to, uint256 validAfter) internal view returns (bytes32) {
        return keccak256(abi.encode(EXACT_PROXY.WITNESS_TYPEHASH(), to, validAfter));
    }

    function uptoWitness(address to, address facilitator, uint256 validAfter)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(UPTO_PROXY.WITNESS_TYPEHASH(), to, facilitator, validAfter));
    }

    /// @dev What is signed for a spender that is one of the proxies.
    function permit2Digest(IPermit2.PermitTransferFrom memory permit, IPermit2Proxy proxy, bytes32 witness)
        internal
        view
        returns (bytes32)
    {
        return permit2Digest(permit, address(proxy), witness, proxy.WITNESS_TYPE_STRING());
    }

    function permit2Digest(
        IPermit2.PermitTransferFrom memory permit,
        address spender,
        bytes32 witness,
        string memory witnessTypeString
    ) internal view returns (bytes32) {
        bytes32 typeHash = keccak256(
            abi.encodePacked(
                "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,",
                witnessTypeString
            )
        );
        bytes32 permitted = keccak256(abi.encode(TOKEN_PERMISSIONS_TYPEHASH, permit.permitted));
        bytes32 structHash =
            keccak256(abi.encode(typeHash, permitted, spender, permit.nonce, permit.deadline, witness));
        return keccak256(abi.encodePacked(hex"1901", PERMIT2.DOMAIN_SEPARATOR(), structHash));
    }

    function signatureOver(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }
}
